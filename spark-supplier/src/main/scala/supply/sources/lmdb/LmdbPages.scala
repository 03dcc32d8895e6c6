package supply.sources.lmdb

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.UTF_8

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
