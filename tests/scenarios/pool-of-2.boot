hugepages=2
