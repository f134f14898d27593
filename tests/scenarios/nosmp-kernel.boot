hugepages=16 hugepagesz=1G hugepages=1
