package supply.tools

import java.io.IOException
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import supply.source.ForeignFile

/** What a folder lies on. `text`: for people. */
private[tools] sealed abstract class Storage(val text: String)

private[tools] object Storage {
  case object Memory extends Storage("memory (tmpfs)")
  final case class Network(kind: String) extends Storage(s"a network file system ($kind)")
  final case class Rotating(kind: String, device: String)
      extends Storage(s"$kind on $device, a disk that rotates")
  final case class SolidState(kind: String, device: String)
      extends Storage(s"$kind on $device, which does not rotate")
  final case class Unknown(why: String) extends Storage(why)

  /**
   * That of a folder, or of the folder in which it would be made. `sysfs`: where the kernel describes
   * its devices.
   */
  def of(folder: Path, sysfs: Path = Paths.get("/sys")): Storage =
    try {
      val found = existing(folder).toRealPath()
      val store = Files.getFileStore(found)
      store.`type`() match {
        case "tmpfs" | "ramfs" => Memory
        case kind if ForeignFile.isRemote(kind) => Network(kind)
        case kind => onDevice(kind, device(found, Paths.get(store.name)), sysfs)
      }
    } catch { case e: IOException => Unknown(s"it cannot be examined: $e") }

  /**
   * Why other processes of this machine may not see the folder. None: they do. `mounts`:
   * /proc/self/mountinfo of the process.
   */
  def isolation(folder: Path, mounts: Path = Paths.get("/proc/self/mountinfo")): Option[String] =
    try isolationOf(existing(folder).toRealPath(), mounts)
    catch { case e: IOException => Some(s"its mount cannot be examined: $e") }

  private def isolationOf(found: Path, mounts: Path): Option[String] = {
    val lines = Files.readAllLines(mounts).asScala.map(_.split(" ").toSeq)
    // The fields: id, parent, device, the folder of the file system, where it is mounted, …, -, type.
    val of = lines.filter(line => found.startsWith(Paths.get(line(4))))
    // Of several on one folder, the last one is seen.
    of.reverse.sortBy(line => -Paths.get(line(4)).getNameCount).headOption.flatMap { line =>
      val kind = line(line.indexOf("-") + 1)
      if (kind == "overlay") Some("it is a container's own")
      else if (line(3).contains("/systemd-private-")) Some("it is a service's own (PrivateTmp)")
      else None
    }
  }

  private def existing(folder: Path): Path =
    Iterator.iterate(folder.toAbsolutePath)(_.getParent).find(Files.exists(_)).get

  /** Of the block device on which a file lies. Btrfs gives its files a number of its own. */
  private def device(file: Path, store: Path): Long =
    if (store.startsWith("/dev") && Files.exists(store))
      Files.getAttribute(store, "unix:rdev").asInstanceOf[Long]
    else Files.getAttribute(file, "unix:dev").asInstanceOf[Long]

  private def onDevice(kind: String, number: Long, sysfs: Path): Storage = {
    val entry = sysfs.resolve(s"dev/block/${major(number)}:${minor(number)}")
    if (Files.notExists(entry)) Unknown(s"$kind, and the kernel does not say on which disk")
    else {
      val real = entry.toRealPath()
      val disk = if (Files.exists(real.resolve("partition"))) real.getParent else real
      val name = disk.getFileName.toString
      val flag = disk.resolve("queue/rotational")
      if (Files.notExists(flag))
        Unknown(s"$kind on $name, and the kernel does not say whether that rotates")
      else if (isVirtual(disk))
        Unknown(s"$kind on $name, a virtual disk: its host knows whether it rotates")
      else if (Files.readString(flag).trim == "1") Rotating(kind, name)
      else SolidState(kind, name)
    }
  }

  /** Their flag says nothing: it is whatever the host's default is. */
  private def isVirtual(disk: Path): Boolean =
    disk.iterator.asScala.map(_.toString).exists(name =>
      name.matches("virtio[0-9]+|vbd-[0-9]+|VMBUS.*"))

  // As the C library's major() and minor().
  private def major(number: Long): Long = ((number >> 8) & 0xfff) | ((number >> 32) & ~0xfffL)

  private def minor(number: Long): Long = (number & 0xff) | ((number >> 12) & ~0xffL)
}
