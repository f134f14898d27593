hugepages=0:64,1:32 hugepagesz=1G hugepages=1
