nr_cpus=1 reset_devices hugepages=512
