hugetlb_free_vmemmap=off hugepages=4000
hugetlb_free_vmemmap=on hugepages=4000
hugetlb_free_vmemmap=off hugepages=0:4000
hugetlb_free_vmemmap=on hugepages=0:4000
