hugepages=96 hugepagesz=1G hugepages=3
hugepages=0:1,7:400,3:1000
hugepages=32 hugepagesz=1G hugepages=0:1,5:1
