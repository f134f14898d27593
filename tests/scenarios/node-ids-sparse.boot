hugepages=2:4
hugepagesz=1G hugepages=2:1
