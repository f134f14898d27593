hugepages=1
hugepages=0
default_hugepagesz=1G hugepagesz=1G hugepages=1 hugepagesz=2M hugepages=101
hugepagesz=1G hugepages=9
hugetlb_cma=1G hugetlb_cma_only=1 hugepagesz=1G hugepages=2
