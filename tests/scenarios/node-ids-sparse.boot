hugepages=2:4
