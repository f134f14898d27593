hugepages=1101
hugetlb_free_vmemmap=on hugepages=1101
hugepages=0:40,1:900 hugepagesz=1G hugepages=2
hugetlb_free_vmemmap=on hugepages=0:40,1:900
hugepages=5000
hugetlb_free_vmemmap=on hugepages=5000
hugepage_alloc_threads=2 hugepages=1101
hugepage_alloc_threads=2 hugepages=6
