default_hugepagesz=1G hugepagesz=1G hugepages=2
