hugepages=0:1,9:1
