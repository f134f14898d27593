nr_cpus=1 hugepages=16 hugepagesz=1G hugepages=1
nosmp hugepages=16 hugepagesz=1G hugepages=1
maxcpus=2 hugepages=16 hugepagesz=1G hugepages=1
isolcpus=1-3 hugepages=16 hugepagesz=1G hugepages=1
