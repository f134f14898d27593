/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device without hardware that reads memory through pinned pages: iommufd's own, which a
 * kernel with CONFIG_IOMMUFD_TEST has.
 */
#ifndef IOMMU_H
#define IOMMU_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* An address space that maps one file, and a device that reads there; fd is closed when done. */
struct iommu {
	int fd;
	unsigned int access_id;
};

/* Is there such a device? */
bool iommu_present(void);

/* Map the first @len bytes of file @fd. False, with errno set, if that fails. */
bool iommu_open(struct iommu *iommu, int fd, size_t len);

/* Have the device read @len bytes at @offset of the file, which pins them for so long. */
bool iommu_read(const struct iommu *iommu, off_t offset, void *buf, size_t len);

#endif
