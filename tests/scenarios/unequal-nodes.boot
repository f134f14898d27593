hugepages=3001
hugepages=0:40,1:1900 hugepagesz=1G hugepages=2
hugetlb_free_vmemmap=on hugepages=0:40,1:1900
hugepages=7000
hugepage_alloc_threads=2 hugepages=3001
hugepage_alloc_threads=2 hugepages=8
