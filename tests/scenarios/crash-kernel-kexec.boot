crashkernel=256M retain_initrd kunit.enable=0
