package supply.pair

import java.io.IOException
import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path, Paths}

import supply.core.{ConfigException, ConfigText, Size}
import supply.protocol.Layout.Constant

/**
 * The three files of a local rank's pair, with its line of mapped-files.conf, and the group whose
 * members may use them (docs/SECURITY.md).
 */
private[supply] final case class PairPaths(
    mappedFile: String,
    requestPipe: String,
    notificationPipe: String,
    configLine: String,
    group: Option[String] = None,
    mappedBytes: Long = 0) {
  /** A result of the rank, once it is sealed. `folder`: the results folder; None: the mapped file's folder. */
  def resultFile(folder: Option[String], name: String): String = {
    val mapped = Paths.get(mappedFile)
    folder.map(Paths.get(_)).getOrElse(mapped.getParent).resolve(
      s"${mapped.getFileName}.$name.result").toString
  }
}

private[supply] object PairPaths {
  private val ResultNames = "[A-Za-z0-9_-]{1,64}"

  def isResultName(name: String): Boolean = name.matches(ResultNames)
}

/**
 * Where the resident files of a run are: in this folder of each node; None: each beside the mapped
 * file of its pair, which is in memory.
 */
private[supply] final case class ResidentPlace(folder: Option[String]) {
  def of(pair: PairPaths): Path =
    folder.fold(Paths.get(pair.mappedFile).toAbsolutePath.getParent)(Paths.get(_))
}

/**
 * mapped-files.conf and named-pipes.conf: line i belongs to local rank i (docs/CONFIG-FILES.md).
 * The sizes on it are for the rank; here they only tell the memory that a container needs.
 * `texts`: see [[ConfigText]].
 */
private[supply] final case class ConfigFiles(mappedFiles: String, namedPipes: String,
    texts: Map[String, String] = Map.empty) {
  /** The pairs of this node, by local rank. Call it where the task runs: nodes may differ. */
  def read(): IndexedSeq[PairPaths] = if (texts.isEmpty) ConfigFiles.read(this) else parse()

  private def parse(): IndexedSeq[PairPaths] = {
    val mapped = ConfigFiles.lines(mappedFiles, texts)
    val pipes = ConfigFiles.lines(namedPipes, texts)
    if (mapped.size != pipes.size)
      throw new ConfigException(
        s"$mappedFiles has ${mapped.size} lines and $namedPipes has ${pipes.size}: " +
          "line i of both belongs to local rank i, so give both the same number of lines")
    mapped.zip(pipes).map { case (m, p) =>
      if (p.words.size != 2)
        throw new ConfigException(
          s"${p.place}: expected 'REQUEST_PIPE NOTIFICATION_PIPE', found ${p.words.size} words")
      m.words.tail.foreach { word =>
        if (!Seq("ring=", "block=", "group=").exists(word.startsWith))
          throw new ConfigException(
            s"${m.place}: unknown word '$word': expected PATH [ring=SIZE|auto] [block=SIZE] [group=NAME]")
      }
      (m.words.head +: p.words).foreach { path =>
        if (!path.startsWith("/"))
          throw new ConfigException(
            s"${if (path == m.words.head) m.place else p.place}: '$path' is not an absolute path")
      }
      PairPaths(m.words.head, p.words(0), p.words(1), m.place, ConfigFiles.group(m),
        RingSize.mappedBytes(m.place, m.words.tail))
    }
  }

  /** The pairs of local ranks 0 until `count`. */
  def read(count: Int): IndexedSeq[PairPaths] = {
    val pairs = read()
    if (pairs.size < count)
      throw new ConfigException(
        s"$mappedFiles and $namedPipes have lines for ${pairs.size} local ranks, but $count are " +
          s"needed here: write them for $count pairs with launch/make-configs")
    pairs
  }
}

private[supply] object ConfigFiles {
  private final case class Line(place: String, words: IndexedSeq[String])

  /** `changed`: unlike the time of modification, no program can set it back. */
  private final case class State(file: String, inode: AnyRef, changed: FileTime, bytes: AnyRef) {
    /** A later change gets another time: the kernel's clock has moved since. */
    def isSettled: Boolean = changed.toMillis < System.currentTimeMillis - settledMillis
  }

  private val settledMillis = 1000L

  /** All tasks of an executor read the same two files, which have a line for each of them. */
  private var last: Option[(Seq[State], IndexedSeq[PairPaths])] = None

  private def read(files: ConfigFiles): IndexedSeq[PairPaths] = synchronized {
    val states = Seq(files.mappedFiles, files.namedPipes).flatMap(stateOf)
    last.collect { case (`states`, pairs) => pairs }.getOrElse {
      val pairs = files.parse()
      last = Some(states -> pairs).filter(_ => states.forall(_.isSettled))
      pairs
    }
  }

  /** None: the file cannot be read, which parse() reports. */
  private def stateOf(file: String): Option[State] =
    try {
      val attributes = Files.readAttributes(Paths.get(file), "unix:ino,ctime,size")
      Some(State(file, attributes.get("ino"), attributes.get("ctime").asInstanceOf[FileTime],
          attributes.get("size")))
    } catch { case _: IOException => None }

  private def group(line: Line): Option[String] = {
    val groups = line.words.tail.filter(_.startsWith("group=")).map(_.stripPrefix("group="))
    if (groups.size > 1)
      throw new ConfigException(s"${line.place}: 'group=${groups(1)}' is the second of its kind")
    if (groups.contains("")) throw new ConfigException(s"${line.place}: 'group=' names no group")
    groups.headOption
  }

  private def lines(file: String, texts: Map[String, String]): IndexedSeq[Line] = {
    val text =
      try ConfigText.lines(file, texts)
      catch {
        case e: IOException =>
          throw new ConfigException(
            s"cannot read ${Paths.get(file).toAbsolutePath} (${e.getClass.getSimpleName}): " +
              "write the two config files with launch/make-configs, and give paths that every node has",
            e)
      }
    text.zipWithIndex.flatMap { case (line, i) =>
      val words = line.takeWhile(_ != '#').split("\\s+").filter(_.nonEmpty)
      if (words.isEmpty) None else Some(Line(s"$file:${i + 1}", words.toIndexedSeq))
    }
  }
}

/** The sizes of ring and block, by the rules of libsupply (mpi-client/src/files/options.c). */
private[supply] object RingSize {
  private final val DefaultBlocks = 4
  private final val DefaultBlockBytes = 2L << 20

  /** The most that ring=auto chooses, if blocks are not larger than half of it. */
  private final val AutomaticMax = 16L << 20

  /**
   * Bytes of the whole mapped file, from the words after its path. With ring=auto, the largest that
   * the caches of the rank's node may lead to.
   */
  def mappedBytes(place: String, words: Seq[String]): Long = {
    def size(name: String) = words.find(_.startsWith(name)).map(word =>
      Size.bytes(s"$place: $name", word.stripPrefix(name)))
    if (words.contains("ring=auto"))
      automatic(roundUp(size("block=").getOrElse(DefaultBlockBytes), Constant.BLOCK_BYTES_UNIT))
    else chosen(size("ring="), size("block="))
  }

  private def automatic(block: Long): Long = Constant.RING_OFFSET +
    (if (block > AutomaticMax / 2) DefaultBlocks * block else roundUp(AutomaticMax, block))

  private def chosen(ring: Option[Long], blockWord: Option[Long]): Long = {
    val block = roundUp(
      blockWord.getOrElse(ring.map(r => math.max(1L, r / DefaultBlocks)).getOrElse(
          DefaultBlockBytes)), Constant.BLOCK_BYTES_UNIT)
    Constant.RING_OFFSET + ring.map(roundUp(_, block)).getOrElse(DefaultBlocks * block)
  }

  private def roundUp(value: Long, unit: Long): Long = (value + unit - 1) / unit * unit
}
