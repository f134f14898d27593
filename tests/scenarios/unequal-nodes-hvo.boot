hugetlb_free_vmemmap=on hugepages=3001
hugetlb_free_vmemmap=on hugepages=7000
