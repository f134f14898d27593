hugepages=101 hugepagesz=1G hugepages=3
hugetlb_free_vmemmap=on hugepages=0:5,1:7 hugepagesz=1G hugepages=0:1,1:2
hugepages=0:4000,1:10 hugepagesz=1G hugepages=1:9
hugepages=7000
default_hugepagesz=1G hugepagesz=1G hugepages=20
hugetlb_cma=0:1G,1:2G hugepagesz=1G hugepages=3 hugepagesz=2M hugepages=9
hugetlb_cma=0:1G,1:3G hugetlb_cma_only=1 hugepagesz=1G hugepages=4
movablecore=4608M hugepagesz=1G hugepages=0:5,1:5
