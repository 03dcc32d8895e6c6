package supply.lmdb

import java.io.IOException
import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}
import java.nio.file.{Files, Path, Paths, StandardOpenOption}
import java.nio.{BufferUnderflowException, ByteBuffer, ByteOrder}

import supply.core.SourceException

/** A checked LMDB data file, with the number of entries of its main database. */
private[supply] final case class LmdbFile(path: String, entries: Long)

/**
 * Finds the data file and checks its meta pages before liblmdb maps it. liblmdb itself says little
 * about a file that it refuses, and crashes the process if the file is cut off. The layout is
 * MDB_meta in LMDB's mdb.c.
 */
private[supply] object LmdbFile {
  private val magic = 0xbeefc0de
  private val version = 1

  /** Page header: page number, pad, flags, bounds. */
  private val pageHeader64 = 16
  private val pageHeader32 = 12
  private val metaBytes = 136
  private val dupSort = 0x04
  private val gitLfs = "version https://git-lfs".getBytes(US_ASCII)

  private object Meta {
    val version = 4
    val freeDbPad = 24 // holds the page size
    val mainDbFlags = 76
    val mainDbEntries = 104
    val mainDbRoot = 112
    val lastPage = 120
    val transaction = 128
  }

  /** @param name a directory with a data.mdb, or a data file itself */
  def open(name: String): LmdbFile = {
    val root = Paths.get(name)
    if (!Files.exists(root))
      throw new SourceException(s"there is no LMDB at $name: no such file or directory (--lmdb)")
    val file = if (Files.isDirectory(root)) root.resolve("data.mdb") else root
    if (!Files.exists(file))
      throw new SourceException(s"$name holds no LMDB: it has no data.mdb (--lmdb)")
    try {
      val channel = FileChannel.open(file, StandardOpenOption.READ)
      try read(file, channel)
      finally channel.close()
    } catch {
      case e: IOException => throw new SourceException(s"cannot read the LMDB $file: $e", e)
    }
  }

  private def read(file: Path, channel: FileChannel): LmdbFile = {
    def refuse(why: String): Nothing =
      throw new SourceException(s"$file is not an LMDB that can be read here: $why")

    def at(offset: Long, bytes: Int): ByteBuffer = {
      val buffer = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN)
      while (buffer.hasRemaining && channel.read(buffer, offset + buffer.position()) > 0) {}
      buffer.flip()
      buffer
    }

    val first = at(0, pageHeader64 + metaBytes)
    def word(offset: Int) =
      try first.getInt(offset)
      catch { case _: IndexOutOfBoundsException | _: BufferUnderflowException => 0 }
    val swapped = Integer.reverseBytes(magic)
    if (word(pageHeader64) != magic) {
      if (word(pageHeader32) == magic)
        refuse("a 32-bit machine wrote it. Copy it with mdb_dump there and mdb_load here")
      if (word(pageHeader64) == swapped || word(pageHeader32) == swapped)
        refuse("a big-endian machine wrote it. Copy it with mdb_dump there and mdb_load here")
      if (startsWith(first, gitLfs))
        refuse(
          "it is a pointer of Git LFS, which stands for a file that was not fetched: git lfs pull")
      refuse("it does not begin as one (no magic number)")
    }
    if (first.limit() < pageHeader64 + metaBytes) refuse("it is cut off in its first page")
    if (word(pageHeader64 + Meta.version) != version)
      refuse(s"its format is version ${word(pageHeader64 + Meta.version)}, known is $version")
    val pageBytes = word(pageHeader64 + Meta.freeDbPad)
    if (pageBytes < 512 || pageBytes > 65536 || Integer.bitCount(pageBytes) != 1)
      refuse(s"its page size is $pageBytes")
    val second = at(pageBytes, pageHeader64 + metaBytes)
    if (second.limit() < pageHeader64 + metaBytes) refuse("it is cut off in its second page")
    // The meta page of the later transaction is valid.
    val meta = Seq(first, second).maxBy(_.getLong(pageHeader64 + Meta.transaction))
    val pages = meta.getLong(pageHeader64 + Meta.lastPage) + 1
    val root = meta.getLong(pageHeader64 + Meta.mainDbRoot)
    lazy val tree = new LmdbPages(channel, pageBytes, pages)
    if ((meta.getShort(pageHeader64 + Meta.mainDbFlags) & dupSort) != 0)
      refuse("its keys have several values each (MDB_DUPSORT), which a Caffe database never has")
    val entries = meta.getLong(pageHeader64 + Meta.mainDbEntries)
    if (entries == 0)
      throw new SourceException(s"the LMDB $file is empty: it has no entries to supply")
    // A writer does not write the last pages if it has freed them again.
    if (channel.size() < pages * pageBytes && !tree.areComplete(root))
      refuse(s"it is cut off: it has ${channel.size()} bytes of ${pages * pageBytes}")
    val databases = tree.databases(root)
    if (databases.nonEmpty)
      refuse(
        s"its entries are named databases (${databases.mkString(", ")}), and only the unnamed one is read. Copy " +
          s"the one that you want: mdb_dump -s ${databases.head} OLD | grep -v '^database=' | mdb_load NEW")
    LmdbFile(file.toString, entries)
  }

  private def startsWith(bytes: ByteBuffer, text: Array[Byte]): Boolean =
    bytes.limit() >= text.length && text.indices.forall(i => bytes.get(i) == text(i))
}

/**
 * The pages of an LMDB's main database, read from the file and not through a mapping: a page that
 * is not there then is an answer and not a crash. The layout is MDB_page and MDB_node in LMDB's
 * mdb.c.
 */
private[lmdb] final class LmdbPages(channel: FileChannel, pageBytes: Int, pages: Long) {
  import LmdbPages._

  private val size = channel.size()

  /** Whether every page that the tree uses lies within the file. A writer may leave out others. */
  def areComplete(root: Long): Boolean = {
    var left = pages
    def within(first: Long, count: Long) =
      first >= 0 && count >= 0 && first <= size / pageBytes - count
    def complete(number: Long, depth: Int): Boolean = {
      left -= 1
      left >= 0 && depth < MaxDepth && within(number, 1) && {
        val page = read(number)
        if (isBranch(page)) page.nodes.forall(node => complete(page.child(node), depth + 1))
        else page.nodes.filter(page.hasFlag(_, BigData)).forall { node =>
          val bytes = PageHeader + page.valueBytes(node)
          within(page.overflow(node), (bytes + pageBytes - 1) / pageBytes)
        }
      }
    }
    complete(root, 0)
  }

  /** The names of the databases in the first leaf, if it holds databases instead of values. */
  def databases(root: Long): Seq[String] = {
    var page = read(root)
    var depth = 0
    while (isBranch(page) && page.nodes.nonEmpty && depth < MaxDepth) {
      page = read(page.child(page.nodes.head))
      depth += 1
    }
    page.nodes.filter(page.hasFlag(_, SubData)).map(page.key)
  }

  private def read(number: Long): Page = {
    val bytes = ByteBuffer.allocate(pageBytes).order(ByteOrder.LITTLE_ENDIAN)
    if (number >= 0 && number < size / pageBytes)
      while (bytes.hasRemaining && channel.read(bytes,
          number * pageBytes + bytes.position()) > 0) {}
    bytes.clear()
    new Page(bytes)
  }

  private def isBranch(page: Page) = (page.flags & Branch) != 0
}

private object LmdbPages {
  private val PageHeader = 16L
  private val Branch = 0x01
  private val BigData = 0x01
  private val SubData = 0x02
  private val NodeHeader = 8

  /** CURSOR_STACK in mdb.c. */
  private val MaxDepth = 32

  /** A node is its offset in the page. What is not there is 0: liblmdb refuses it later. */
  private final class Page(bytes: ByteBuffer) {
    def flags: Int = short(10)

    def nodes: Seq[Int] = {
      val lower = math.min(short(12), bytes.capacity())
      (PageHeader.toInt until lower - 1 by 2).map(short)
    }

    def hasFlag(node: Int, flag: Int): Boolean = (short(node + 4) & flag) != 0

    def child(node: Int): Long =
      short(node) | short(node + 2).toLong << 16 | short(node + 4).toLong << 32

    def valueBytes(node: Int): Long = short(node) | short(node + 2).toLong << 16

    def overflow(node: Int): Long = {
      val at = node + NodeHeader + short(node + 6)
      if (at <= bytes.capacity() - 8) bytes.getLong(at) else -1
    }

    def key(node: Int): String = {
      val from = math.min(node + NodeHeader, bytes.capacity())
      new String(bytes.array, from, math.min(short(node + 6), bytes.capacity() - from), UTF_8)
    }

    private def short(at: Int): Int =
      if (at <= bytes.capacity() - 2) bytes.getShort(at) & 0xffff else 0
  }
}
