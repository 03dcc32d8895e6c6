package supply.tools

import java.nio.file.{Files, Path, Paths}

import org.scalatest.funsuite.AnyFunSuite

import supply.testing.TemporaryFolder

final class StorageSuite extends AnyFunSuite {
  private val shared = Paths.get("/dev/shm")

  test("a tmpfs is memory, and so is a folder that would be made in it") {
    assume(Files.getFileStore(shared).`type`() == "tmpfs", "/dev/shm is no tmpfs here")
    assert(Storage.of(shared) == Storage.Memory)
    assert(Storage.of(shared.resolve("missing/too")) == Storage.Memory)
  }

  for ((flag, rotates) <- Seq("1" -> true, "0" -> false))
    test(s"a disk whose flag is $flag ${if (rotates) "rotates" else "does not rotate"}") {
      onDisk { (folder, sysfs) =>
        describe(sysfs, folder, "devices/pci/ata1/block/sda", flag)
        Storage.of(folder, sysfs) match {
          case Storage.Rotating(_, "sda") => assert(rotates)
          case Storage.SolidState(_, "sda") => assert(!rotates)
          case other => fail(other.toString)
        }
      }
    }

  test("a partition has the flag of its disk") {
    onDisk { (folder, sysfs) =>
      val disk = sysfs.resolve("devices/pci/ata1/block/sda")
      describe(sysfs, folder, "devices/pci/ata1/block/sda/sda2", "")
      Files.delete(disk.resolve("sda2/queue/rotational"))
      Files.writeString(disk.resolve("sda2/partition"), "2\n")
      Files.createDirectories(disk.resolve("queue"))
      Files.writeString(disk.resolve("queue/rotational"), "1\n")
      assert(Storage.of(folder, sysfs).isInstanceOf[Storage.Rotating])
    }
  }

  test("the flag of a virtual disk is not believed") {
    onDisk { (folder, sysfs) =>
      describe(sysfs, folder, "devices/pci/virtio1/block/vda", "1")
      assert(unknown(Storage.of(folder, sysfs)).contains("vda, a virtual disk"))
    }
  }

  test("what the kernel does not describe is unknown") {
    onDisk { (folder, sysfs) =>
      assert(unknown(Storage.of(folder, sysfs)).contains("does not say on which disk"))
      describe(sysfs, folder, "devices/pci/ata1/block/sda", "0")
      Files.delete(sysfs.resolve("devices/pci/ata1/block/sda/queue/rotational"))
      assert(unknown(Storage.of(folder, sysfs)).contains("sda, and the kernel does not say"))
    }
  }

  for ((line, why) <- Seq(
      "30 1 0:40 / / rw - overlay overlay rw" -> Some("a container's own"),
      "30 1 8:1 /tmp/systemd-private-1-x.service-y/tmp /tmp rw shared:1 - ext4 /dev/sda1 rw" ->
        Some("a service's own"),
      "30 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw" -> None))
    test(s"whose mount it is: $why") {
      withMounts(line) { mounts =>
        val found = Storage.isolation(Paths.get("/tmp"), mounts)
        assert(found.isDefined == why.isDefined && why.forall(found.mkString.contains(_)), found)
      }
    }

  test("the last mount on the longest path counts") {
    withMounts("1 0 0:40 / / rw - overlay overlay rw", "2 1 8:1 / /tmp rw - ext4 /dev/sda1 rw",
      "3 1 0:9 / /tmpfs rw - overlay overlay rw") { mounts =>
      assert(Storage.isolation(Paths.get("/tmp"), mounts).isEmpty)
      assert(Storage.isolation(Paths.get("/usr"), mounts).isDefined)
    }
    withMounts("2 1 8:1 / / rw - ext4 /dev/sda1 rw", "3 2 0:40 / / rw - overlay overlay rw") {
      mounts => assert(Storage.isolation(Paths.get("/tmp"), mounts).isDefined)
    }
  }

  test("mounts that cannot be read are no error") {
    TemporaryFolder { folder =>
      val found = Storage.isolation(Paths.get("/tmp"), folder.resolve("missing"))
      assert(found.exists(_.contains("cannot be examined")), found)
    }
  }

  private def unknown(storage: Storage): String = storage match {
    case Storage.Unknown(why) => why
    case other => fail(other.toString)
  }

  /** A folder on a disk of this machine, and an empty folder that stands for /sys. */
  private def onDisk(body: (Path, Path) => Unit): Unit = TemporaryFolder { folder =>
    val store = Files.getFileStore(folder)
    assume(store.name.startsWith("/dev/"), s"$folder is on ${store.name}, and not on a disk")
    body(folder, Files.createDirectory(folder.resolve("sys")))
  }

  /** Describes the disk of `folder` as the kernel would: a link by number to a folder. */
  private def describe(sysfs: Path, folder: Path, device: String, flag: String): Unit = {
    val queue = Files.createDirectories(sysfs.resolve(device).resolve("queue"))
    Files.writeString(queue.resolve("rotational"), flag + "\n")
    val links = Files.createDirectories(sysfs.resolve("dev/block"))
    val _ = Files.createSymbolicLink(links.resolve(number(folder)), sysfs.resolve(device))
  }

  /** As the kernel writes it: 8:1. */
  private def number(folder: Path): String = {
    val lines = Files.readAllLines(Paths.get("/proc/self/mountinfo"))
    val of = Files.getFileStore(folder).name
    lines.toArray(Array.empty[String]).map(_.split(" ")).find(line =>
      line(line.indexOf("-") + 2) == of).map(_(2)).getOrElse(fail(s"no mount of $of"))
  }

  private def withMounts(lines: String*)(body: Path => Unit): Unit = TemporaryFolder { folder =>
    body(Files.writeString(folder.resolve("mountinfo"), lines.mkString("", "\n", "\n")))
  }
}
