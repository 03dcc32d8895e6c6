package supply.pair

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{NoSuchFileException, Path}
import java.nio.file.StandardOpenOption.{READ, WRITE}

import org.scalatest.funsuite.AnyFunSuite

import supply.core.Deadline
import supply.protocol.{Layout, Notification, Request}
import supply.protocol.Layout.Constant
import supply.testing.TemporaryFolder

/**
 * The ends of pipes after a time in which this process stood still. Each pipe is opened again after
 * its deadline: what the test does then has happened before.
 */
class NamedPipeSuite extends AnyFunSuite {
  private val notification = Notification.failure(generation = 7)

  private def passed = new Deadline(0.001)

  /** body: of the pipe's path, and of a channel that keeps it open. */
  private def withPipe(body: (Path, FileChannel) => Unit): Unit = TemporaryFolder { folder =>
    val path = folder.resolve("pipe")
    assert(new ProcessBuilder("mkfifo", path.toString).start().waitFor() == 0)
    val rank = FileChannel.open(path, READ, WRITE)
    try body(path, rank)
    finally rank.close()
  }

  /** Opens the pipe, and before the second time runs `meanwhile`. */
  private def opening(open: => FileChannel)(meanwhile: => Unit): () => FileChannel = {
    var times = 0
    () => {
      times += 1
      if (times == 2) meanwhile
      open
    }
  }

  test("a request is found after the deadline") {
    withPipe { (path, rank) =>
      val request = NamedPipe.buffer(Layout.Request.SIZE)
      request.putLong(Layout.Request.generation, 7)
      request.putInt(Layout.Request.kind, Constant.REQUEST_RELEASE)
      val pipe = new RequestPipe(opening(FileChannel.open(path, READ)) { rank.write(request); () })
      val expected = RequestPipe.Received(Request(7, Constant.REQUEST_RELEASE))
      try assert(pipe.read(passed) == expected)
      finally pipe.close()
    }
  }

  test("a pipe that is closed is not kept until its deadline") {
    withPipe { (path, rank) =>
      val before = Deadline.timer.getQueue.size
      (1 to 20).foreach { _ =>
        rank.write(NamedPipe.buffer(Layout.Request.SIZE))
        val pipes = (NamedPipe.openRequests(path, None), NamedPipe.openNotifications(path, None))
        assert(pipes._1.read(new Deadline(864000)) == RequestPipe.Received(Request(0, 0)))
        assert(pipes._2.write(notification, new Deadline(864000)))
        pipes._1.close()
        pipes._2.close()
        rank.read(ByteBuffer.allocate(Layout.Notification.SIZE))
      }
      assert(Deadline.timer.getQueue.size <= before)
    }
  }

  test("the end of a rank is found after the deadline") {
    withPipe { (path, _) =>
      val pipe = new RequestPipe(
        opening(FileChannel.open(path, READ))(throw new NoSuchFileException(path.toString)))
      try assert(pipe.read(passed) == RequestPipe.EndOfFile)
      finally pipe.close()
    }
  }

  test("a request that does not come, and a pipe that stays full") {
    withPipe { (path, rank) =>
      val requests = new RequestPipe(() => FileChannel.open(path, READ))
      try assert(requests.read(passed) == RequestPipe.TimedOut)
      finally requests.close()
      val notifications = new NotificationPipe(() => FileChannel.open(path, WRITE))
      try {
        while (notifications.write(notification, new Deadline(1))) {}
        assert(!notifications.write(notification, passed))
        // The rank reads again, and nothing is lost.
        rank.read(ByteBuffer.allocate(Layout.Notification.SIZE * 100))
        assert(notifications.write(notification, new Deadline(20)))
      } finally notifications.close()
    }
  }

  test("a notification is written after the deadline, if the pipe is no longer full") {
    withPipe { (path, rank) =>
      val pipe = new NotificationPipe(opening(FileChannel.open(path, WRITE)) {
        rank.read(ByteBuffer.allocate(1 << 16))
        ()
      })
      val full = NamedPipe.buffer(1 << 16)
      rank.write(full)
      try assert(pipe.write(notification, passed))
      finally pipe.close()
    }
  }
}
