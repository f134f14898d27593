numa=off hugepages=0:3,1:3
