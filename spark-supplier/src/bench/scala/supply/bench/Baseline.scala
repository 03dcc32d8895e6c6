package supply.bench

import java.io.{BufferedReader, InputStreamReader}
import java.lang.management.ManagementFactory
import java.nio.ByteBuffer

import com.sun.management.ThreadMXBean

import supply.pair.Pair

/** A reference for the cycle's figures, measured in the same task. */
private[bench] trait Baseline extends AutoCloseable {
  def measure(): Measured
}

private[bench] object Baseline {
  /** What `words` of [[Cycle.baselines]] name; `cached` is what Spark caches for the rank. */
  def of(words: Seq[String], pair: Pair, cached: => CachedElements): Baseline = words match {
    case Seq("memcpy") => new MemcpyBaseline(pair, cached)
    case "program" +: command => new ProgramBaseline(command)
    case Seq("in-place", program) =>
      new ProgramBaseline(Seq(program, pair.paths.mappedFile + ".*.resident"))
    case _ => throw new IllegalArgumentException(s"no baseline '${words.mkString(" ")}'")
  }
}

/** Measures what the calling thread uses from now on. */
private[bench] final class Meter {
  private val allocatedBefore = Meter.allocated
  private val cpuBefore = Meter.threads.getCurrentThreadCpuTime
  private val start = System.nanoTime()

  def measured(elements: Long, bytes: Long): Measured = {
    val nanos = System.nanoTime() - start
    Measured(start, nanos, Meter.threads.getCurrentThreadCpuTime - cpuBefore, elements, bytes)
  }

  def allocatedBytes: Long = Meter.allocated - allocatedBefore
}

private object Meter {
  private val threads = ManagementFactory.getThreadMXBean.asInstanceOf[ThreadMXBean]

  private def allocated: Long = threads.getThreadAllocatedBytes(Thread.currentThread().getId)
}

/** Copies the cached arrays into the slots by the JVM's bulk put, without pipe, rank or columns. */
private final class MemcpyBaseline(pair: Pair, cached: CachedElements) extends Baseline {
  private val arrays = cached.arrays
  private val (count, bytes) = (cached.count, cached.bytes)
  private var turn = 0

  override def measure(): Measured = {
    val ring =
      pair.withMappedFile(pair.file.path)(file => Array.tabulate(file.blockCount)(file.slot)).get
    val meter = new Meter
    var slot = next(ring)
    var i = 0
    while (i < arrays.length) {
      val array = arrays(i)
      var put = 0
      while (put < array.length) {
        if (!slot.hasRemaining) slot = next(ring)
        val n = math.min(slot.remaining(), array.length - put)
        slot.put(array, put, n)
        put += n
      }
      i += 1
    }
    meter.measured(count, bytes)
  }

  private def next(ring: Array[ByteBuffer]): ByteBuffer = {
    turn += 1
    ring(turn % ring.length).clear()
  }

  override def close(): Unit = ()
}

/** A separate program that measures once for each line it reads (bench/c/bench.h). */
private final class ProgramBaseline(command: Seq[String]) extends Baseline {
  private val process =
    new ProcessBuilder(command: _*).redirectError(ProcessBuilder.Redirect.INHERIT).start()
  private val answers = new BufferedReader(new InputStreamReader(process.getInputStream))

  override def measure(): Measured = {
    process.getOutputStream.write('\n')
    process.getOutputStream.flush()
    val line = answers.readLine()
    if (line == null) throw new IllegalStateException(
      s"${command.head} ended with status ${process.waitFor()}: see its message above")
    Json.read[Measured](line)
  }

  override def close(): Unit = {
    process.getOutputStream.close()
    process.waitFor()
    ()
  }
}
