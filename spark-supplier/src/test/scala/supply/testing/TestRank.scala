package supply.testing

import java.io.{BufferedReader, InputStreamReader}
import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import supply.pair.{ConfigFiles, PairPaths}

/**
 * A real rank: a process with libsupply that does one step at a time
 * (mpi-client/tests/support/rank_stepper.c).
 */
final class TestRank(
    val paths: PairPaths, user: Option[TestRank.User] = None) extends AutoCloseable {
  private val process = new ProcessBuilder(TestRank.command(paths, user): _*).redirectError(
    ProcessBuilder.Redirect.INHERIT).start()
  private val answers = new BufferedReader(new InputStreamReader(process.getInputStream))

  def pid: Long = process.pid

  /** Sends a command and returns its answer. */
  def apply(command: String): String = {
    send(command)
    answer()
  }

  def send(command: String): Unit = {
    process.getOutputStream.write((command + "\n").getBytes)
    process.getOutputStream.flush()
  }

  def answer(): String = answers.readLine()

  /** For the next open: which reader of which ring it is. */
  def reader(number: Int, readers: Int, ringFile: String): Unit = {
    val answer = apply(s"reader $number $readers $ringFile")
    assert(answer == "OK", answer)
  }

  def open(
      ringBytes: Long = 8192,
      blockBytes: Long = 4096,
      rank: Int = -1,
      timeout: Double = 30,
      position: Option[String] = None,
      exchange: Boolean = false): String = {
    if (exchange) assert(apply("exchange") == "OK")
    apply(
      s"open ${paths.mappedFile} ${paths.requestPipe} ${paths.notificationPipe} $timeout $ringBytes $blockBytes $rank" +
        position.map(" " + _).getOrElse(""))
  }

  /** Its position. */
  def position(): String = {
    val answer = apply("position")
    assert(answer.startsWith("OK "), answer)
    answer.drop(3)
  }

  /** Reads and releases everything up to the end or an error. Returns the answers to `next`. */
  def drain(): Seq[String] = {
    val seen = Seq.newBuilder[String]
    while (true) {
      val next = apply("next")
      seen += next
      if (next.startsWith("OK ")) assert(apply("release " + next.split(' ')(1)) == "OK")
      else if (!next.startsWith("END_OF_EPOCH")) return seen.result()
    }
    seen.result()
  }

  def kill(): Unit = {
    process.destroyForcibly()
    process.waitFor()
    ()
  }

  override def close(): Unit = {
    process.getOutputStream.close()
    if (!process.waitFor(10, TimeUnit.SECONDS)) kill()
  }
}

object TestRank {

  /** The numbers of a user (and of its own group), and of one more of its groups. */
  final case class User(id: Int, group: Int)

  /** Only root can start it as another user, and from a copy that this user can read. */
  private def command(paths: PairPaths, user: Option[User]): Seq[String] = user match {
    case None => Seq(program)
    case Some(User(id, group)) =>
      val copy = Files.copy(Paths.get(program),
        Paths.get(paths.mappedFile).resolveSibling("../rank-stepper").normalize)
      Seq("setpriv", s"--reuid=$id", s"--regid=$id", s"--groups=$group", "--", copy.toString)
  }

  private val program: String = {
    val built = Paths.get("../build/mpi-client/rank-stepper").toAbsolutePath.normalize
    require(Files.isExecutable(built),
      s"$built is missing: build mpi-client with its tests first (make library-with-tests)")
    built.toString
  }

  /** The config files that name the rank's pair. */
  def configFilesOf(rank: TestRank): ConfigFiles = {
    val folder = Paths.get(rank.paths.mappedFile).getParent
    ConfigFiles(folder.resolve("mapped-files.conf").toString,
      folder.resolve("named-pipes.conf").toString)
  }

  /** Runs `body` with ranks that have opened their pairs in a new folder, and the files that name these. */
  def opened[A](count: Int)(body: (ConfigFiles, Seq[TestRank]) => A): A = TemporaryFolder {
    folder =>
      val files = configFiles(folder, count)
      val ranks = files.read().map(new TestRank(_))
      try {
        ranks.zipWithIndex.foreach { case (rank, i) =>
          assert(rank.open(rank = i, timeout = 60) == "OK")
        }
        body(files, ranks)
      } finally ranks.foreach(_.kill())
  }

  /** Config files of `count` pairs in a folder. */
  def configFiles(folder: Path, count: Int): ConfigFiles = {
    def lines(line: Int => String) = (0 until count).map(i => line(i) + "\n").mkString
    ConfigFiles(
      Files.writeString(folder.resolve("mapped-files.conf"),
        lines(i => s"$folder/pair-$i")).toString,
      Files.writeString(folder.resolve("named-pipes.conf"),
        lines(i => s"$folder/pair-$i.req $folder/pair-$i.ntf")).toString)
  }
}
