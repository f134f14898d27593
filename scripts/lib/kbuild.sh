# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0
# Sourced by what builds kernels: one way to call the kernel's make, the same
# for base and patched so that ccache can serve both.

# kbuild_select TREE CONFIG: sets srctree, builddir, image, arch, probe.
kbuild_select() {
	case $1 in
	base) srctree=$base_tree ;;
	patched) srctree=$linux ;;
	*) bad_option "--tree $1" ;;
	esac
	[[ $2 =~ ^[a-z0-9-]+$ ]] || bad_option "--config $2"
	builddir=${BUILDDIR:-$basedir/build/$1-$2}
	case $2 in
	uml*) arch=um image=$builddir/linux ;;
	*) arch=x86_64 image=$builddir/arch/x86/boot/bzImage ;;
	esac
	case $2 in
	probe*) probe=(CFLAGS_range.o="-include probe/padata_probe.c") ;;
	*) probe=() ;;
	esac
}

# kbuild MAKE-ARGUMENT...
# srcroot: sources are named through a link in the build folder instead of by their full path, so
# that base and patched give the compiler the same words. Depend mode: the compiler's own list of headers
# spares ccache a run of the preprocessor for each file that it has not got. The probe is compiled as the
# beginning of a small file that every kernel has, kernel/range.c: no tree needs a change for it.
kbuild() {
	ln -sfn "$srctree" "$builddir/src"
	((${#probe[@]} == 0)) || ln -sfn "$top/benchmarks/kernel" "$builddir/probe"
	CCACHE_DEPEND=1 CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$builddir \
		KBUILD_BUILD_TIMESTAMP='2000-01-01' KBUILD_BUILD_USER=user KBUILD_BUILD_HOST=host \
		KBUILD_BUILD_VERSION=1 LOCALVERSION='' \
		make -C "$srctree" O="$builddir" srcroot=src ARCH="$arch" KBUILD_KCONFIG="$builddir/Kconfig.all" \
		CC="${CCACHE-$(command -v ccache || true)} gcc" "${probe[@]}" "$@"
}

# copy_build FROM TREE: begin $builddir with what FROM has compiled from TREE; the caller holds FROM's lock.
copy_build() {
	rm -rf "$builddir.new"
	cp -a "$1" "$builddir.new"
	rm -f "$builddir.new/.built" "$builddir.new/.configured"
	# objtool is made with full paths; were it made again, so would be every object that it has seen.
	find "$builddir.new/tools" -name '.*.cmd' -exec sed -i -e "s|$1/|$builddir/|g" -e "s|$2/|$srctree/|g" {} +
	mv "$builddir.new" "$builddir"
}
