hugepages=3
