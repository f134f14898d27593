vm_debug=P hugetlb_free_vmemmap=on default_hugepagesz=1G hugepagesz=1G hugepages=4
vm_debug=P hugetlb_free_vmemmap=off default_hugepagesz=1G hugepagesz=1G hugepages=4
nr_cpus=1 vm_debug=P hugetlb_free_vmemmap=on default_hugepagesz=1G hugepagesz=1G hugepages=4
nr_cpus=1 vm_debug=P hugetlb_free_vmemmap=off default_hugepagesz=1G hugepagesz=1G hugepages=4
