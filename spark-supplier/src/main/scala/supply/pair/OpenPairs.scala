package supply.pair

import java.nio.file.Path
import java.util.concurrent.ConcurrentHashMap

/**
 * The mapped files that this JVM has open, and their pairs. Nothing else here may open them: when
 * any channel of a file is closed, the JVM drops all its locks on the file.
 */
private[pair] object OpenPairs {
  private val pairs = new ConcurrentHashMap[Path, Option[Pair]]

  /** Runs `open`, which may attach a pair; None: the file is open already. */
  def attach[A](path: Path)(open: => Either[A, Pair]): Option[Either[A, Pair]] =
    if (pairs.putIfAbsent(path, None) != null) None
    else {
      var pair = Option.empty[Pair]
      try {
        val outcome = open
        pair = outcome.toOption
        Some(outcome)
      } finally if (pair.isDefined) pairs.put(path, pair) else remove(path)
    }

  /** Runs `open` with the file locked, or `use` with its pair. None: a task attaches or leaves. */
  def attached[A](path: Path)(open: => A)(use: Pair => Option[A]): Option[A] =
    pairs.putIfAbsent(path, None) match {
      case null =>
        try Some(open)
        finally remove(path)
      case attached => attached.flatMap(use)
    }

  /** Whose task holds a file in this JVM; None: it attaches or leaves. */
  def holder(path: Path): Option[Holder] =
    Option(pairs.get(path)).flatten.flatMap(_.withMappedFile(Holder.of))

  def remove(path: Path): Unit = { pairs.remove(path); () }
}
