package supply.source

import java.nio.file.{Files, Path}
import java.nio.file.StandardCopyOption.REPLACE_EXISTING
import java.nio.file.attribute.FileTime

import org.scalatest.funsuite.AnyFunSuite

import supply.core.SourceException
import supply.testing.TemporaryFolder

class ForeignFileSuite extends AnyFunSuite {
  private def withFile(body: Path => Unit): Unit = TemporaryFolder { folder =>
    body(Files.write(folder.resolve("data.mdb"), new Array[Byte](100)))
  }

  private def refused(path: Path): String =
    intercept[SourceException](ForeignFile.find(path.toString)).getMessage

  test("a link leads to the file itself") {
    withFile { path =>
      val link = Files.createSymbolicLink(path.resolveSibling("link"), path)
      val found = ForeignFile.find(link.toString)
      assert(found == ForeignFile.find(path.toString))
      assert(found.path == path.toRealPath().toString && found.bytes == 100)
      assert(found.inode == Files.getAttribute(path, "unix:ino"))
    }
  }

  test("another content, time or file of the same name is another file") {
    withFile { path =>
      def find() = ForeignFile.find(path.toString)
      val first = find()
      Files.write(path, Array.fill(100)(1.toByte))
      val written = find()
      Files.setLastModifiedTime(path, FileTime.fromMillis(0))
      val dated = find()
      Files.move(Files.write(path.resolveSibling("new"), new Array[Byte](100)), path,
        REPLACE_EXISTING)
      assert(Set(first, written, dated, find()).size == 4)
    }
  }

  test("a file that is not there is named, with what to do") {
    withFile { path =>
      val message = refused(path.resolveSibling("other.mdb"))
      assert(message.contains("other.mdb cannot be supplied in place (--in-place): "))
      assert(message.endsWith("Supply it without that option"))
    }
  }

  test("a path without links needs a file") {
    withFile { path =>
      val link = Files.createSymbolicLink(path.resolveSibling("link"), path)
      assert(ForeignFile.realPath(link.toString) == path.toRealPath().toString)
      Files.delete(path)
      val message = intercept[SourceException](ForeignFile.realPath(link.toString)).getMessage
      assert(message.contains("link cannot be supplied in place"))
    }
  }

  test("file systems of other nodes are known by the kernel's names") {
    Seq("nfs", "nfs4", "cifs", "9p", "virtiofs", "ceph", "lustre", "gpfs", "beegfs", "pvfs2",
      "panfs", "wekafs", "gfs2", "fuseblk", "fuse.sshfs").foreach(kind =>
      assert(ForeignFile.isRemote(kind), kind))
    Seq("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay").foreach(kind =>
      assert(!ForeignFile.isRemote(kind), kind))
  }

  test("a path that does not fit into the header is refused") {
    withFile { path =>
      val deep = Files.createDirectories(path.resolveSibling("d" * 200).resolve("e" * 200))
      val message = refused(Files.createFile(deep.resolve("data.mdb")))
      assert(message.contains("its path has more than 367 bytes"))
    }
  }
}
