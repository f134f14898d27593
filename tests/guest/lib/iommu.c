// SPDX-License-Identifier: GPL-2.0
/*
 * A device without hardware that reads memory through pinned pages, see iommu.h.
 *
 * Debian 12's headers know neither IOMMU_IOAS_MAP_FILE nor the test commands, which no header
 * for programs has; what follows is the part of both that is used here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "iommu.h"

#define DEVICE		"/dev/iommu"
#define IOVA		(1ULL << 30)

#define IOAS_ALLOC	_IO(';', 0x81)
#define IOAS_MAP_FILE	_IO(';', 0x8f)
#define TEST_CMD	_IO(';', 0xa0)

#define MAP_FIXED_IOVA	1
#define MAP_READABLE	4

#define TEST_CREATE_ACCESS	5
#define TEST_ACCESS_RW		8

struct ioas_alloc {
	uint32_t size, flags, out_ioas_id;
};

struct ioas_map_file {
	uint32_t size, flags, ioas_id;
	int32_t fd;
	uint64_t start, length, iova;
};

/* Its size is that of the largest command; the kernel wants zeroes in what one does not use. */
struct test_cmd {
	uint32_t size, op, id, reserved;
	union {
		struct {
			uint32_t out_access_fd, flags;
		} create_access;
		struct {
			uint64_t iova, length, uptr;
			uint32_t flags;
		} access_rw;
		uint64_t largest[6];
	};
	uint32_t last;
};

bool iommu_present(void)
{
	struct test_cmd cmd = { .size = sizeof(cmd) };
	int fd = open(DEVICE, O_RDWR);
	bool present;

	if (fd < 0)
		return false;
	/* No such command, but a test device that says so. */
	present = ioctl(fd, TEST_CMD, &cmd) && errno == EOPNOTSUPP;
	close(fd);
	return present;
}

bool iommu_open(struct iommu *iommu, int fd, size_t len)
{
	struct ioas_alloc ioas = { .size = sizeof(ioas) };
	struct ioas_map_file map = {
		.size = sizeof(map),
		.flags = MAP_FIXED_IOVA | MAP_READABLE,
		.fd = fd,
		.length = len,
		.iova = IOVA,
	};
	struct test_cmd access = { .size = sizeof(access), .op = TEST_CREATE_ACCESS };

	iommu->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (iommu->fd < 0)
		return false;
	if (ioctl(iommu->fd, IOAS_ALLOC, &ioas))
		return false;
	map.ioas_id = ioas.out_ioas_id;
	if (ioctl(iommu->fd, IOAS_MAP_FILE, &map))
		return false;
	access.id = ioas.out_ioas_id;
	if (ioctl(iommu->fd, TEST_CMD, &access))
		return false;
	iommu->access_id = access.create_access.out_access_fd;
	return true;
}

bool iommu_read(const struct iommu *iommu, off_t offset, void *buf, size_t len)
{
	struct test_cmd cmd = {
		.size = sizeof(cmd),
		.op = TEST_ACCESS_RW,
		.id = iommu->access_id,
		.access_rw = { .iova = IOVA + offset, .length = len, .uptr = (uintptr_t)buf },
	};

	return !ioctl(iommu->fd, TEST_CMD, &cmd);
}
