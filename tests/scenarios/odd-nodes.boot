hugepages=1202 hugepagesz=1G hugepages=1
hugepages=3:400,1:5,2:300
hugepages=0:3,2:1
hugepages=3000
hugepagesz=1G hugepages=3:1,2:1 hugepagesz=2M hugepages=4
