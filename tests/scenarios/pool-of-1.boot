hugepages=1
