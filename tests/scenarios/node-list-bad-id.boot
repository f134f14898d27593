hugepagesz=1G hugepages=4294967297:5 hugepagesz=2M hugepages=6
