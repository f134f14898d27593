hugepagesz=1G hugepages=0:2,1:2
