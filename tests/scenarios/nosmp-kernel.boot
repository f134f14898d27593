hugepages=16 hugepagesz=1G hugepages=1
hugepages=0:16 hugepagesz=1G hugepages=0:1
