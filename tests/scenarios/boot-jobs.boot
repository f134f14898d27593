trace_clock=global trace_event=padata:padata_mt_start hugepages=1100
trace_clock=global trace_event=padata:padata_mt_start hugepages=0:700,1:400
trace_clock=global trace_event=padata:padata_mt_start hugepage_alloc_threads=3 hugepages=1100
trace_clock=global trace_event=padata:padata_mt_start hugepage_alloc_threads=4294967296 hugepages=8
trace_clock=global trace_event=padata:padata_mt_start hugepagesz=1G hugepages=0:1,1:2
