package supply.run

import scala.collection.mutable

/**
 * Which runs of an application may start ranks: together they must not need more slots than there
 * are, or each would start its ranks in the slots that feed the ranks of the others. Any client may
 * ask, again and again until the turn is its run's, in the order of the first questions. Ranks that
 * wait for a call end if a run of anybody needs their slots or cards.
 *
 * Its lock is taken before those of the hub and of Spark's scheduler.
 *
 * @param offer what Spark has
 * @param isOpen whether a run has a client at the hub
 * @param end asks the client of that run to end its ranks, which wait for a call
 * @param secondsSilent how long a run that waits may not ask
 * @param secondsOpening how long a run that has its turn may take until the hub has it
 */
private[supply] final class Turns(offer: () => Turns.Offer, isOpen: String => Boolean,
    end: String => Unit, secondsSilent: Double = 30, secondsOpening: Double = 300) {
  import Turns._

  private final class Waiting {
    var heardAt: Long = System.nanoTime()
  }

  private final class Holder(var state: State, var needs: Needs, val cards: Map[Card, Int]) {
    val since: Long = System.nanoTime()
    var wasOpen = false
  }

  private val waiting = mutable.LinkedHashMap.empty[String, Waiting]
  private val holders = mutable.LinkedHashMap.empty[String, Holder]

  /** Asks for the turn of a run. If its ranks wait for a call, it is about the next call of them. */
  def ask(run: String, needs: Needs): Answer = synchronized {
    dropDead()
    val own = holders.get(run)
    own.map(_.state) match {
      case Some(Held) => answer(own.get)
      case Some(Ending) => refuse(run)
      case _ =>
        waiting.getOrElseUpdate(run, new Waiting).heardAt = System.nanoTime()
        if (waiting.head._1 == run) grant(run, needs, own) else Answer(Waits)
    }
  }

  /** The ranks of a run that has its turn wait for a call from now on, and need no more than this. */
  def becomeIdle(run: String, needs: Needs): Unit = synchronized {
    val idle = holders.getOrElseUpdate(run, new Holder(Idle, needs, Map.empty))
    idle.state = Idle
    idle.needs = needs
  }

  /** The run needs nothing more. */
  def release(run: String): Unit = synchronized {
    waiting -= run
    holders -= run
    ()
  }

  private def grant(run: String, needs: Needs, own: Option[Holder]): Answer = {
    val offered = offer()
    // Warm ranks may have lost a place since their last call. A new run's client has checked its places.
    if (own.isDefined && !suffice(needs, offered, Nil)) {
      own.get.state = Ending
      refuse(run)
    } else {
      val others = holders.toSeq.filter(_._1 != run)
      val cards = own.fold(choose(needs, offered, others.map(_._2)))(_.cards)
      val inTheWay = others.filter { case (_, other) =>
        other.state != Held && isOn(other, cards, offered, others.map(_._2))
      }
      val fits = others.isEmpty || suffice(needs, offered, others.map(_._2))
      if (fits && inTheWay.isEmpty) {
        waiting -= run
        val holder = new Holder(Held, needs, cards)
        holders(run) = holder
        answer(holder)
      } else {
        val (idle, busy) = others.partition(_._2.state == Idle)
        val slots =
          if (fits) Nil else idle.filter(_._2.needs.slots.keys.exists(needs.slots.contains))
        if (busy.isEmpty || suffice(needs, offered, busy.map(_._2)))
          (inTheWay ++ slots).distinct.filter(_._2.state == Idle).foreach { case (name, other) =>
            other.state = Ending
            end(name)
          }
        Answer(Waits)
      }
    }
  }

  private def refuse(run: String): Answer = {
    waiting -= run
    Answer(Gone)
  }

  private def suffice(needs: Needs, offered: Offer, taken: Seq[Holder]): Boolean =
    needs.slots.forall { case (slot, count) =>
      count + taken.map(_.needs.slots.getOrElse(slot, 0)).sum <= offered.slots.getOrElse(slot, 0)
    }

  /** Cards for the ranks of each host, those with the fewest ranks, and how many ranks each gets. */
  private def choose(needs: Needs, offered: Offer, others: Seq[Holder]): Map[Card, Int] =
    offered.gpus.flatMap { case (host, addresses) =>
      val found = addresses.map(Card(host, _))
      val ranks = needs.ranks.getOrElse(host, 0)
      val wanted = ranks * math.max(1, offered.gpusOfTask.toInt)
      // Without an amount, and for ranks that mpirun places, all ranks see all.
      if (ranks != 0 && (ranks < 0 || offered.gpusOfTask <= 0))
        found.map(_ -> offered.ranksOfGpu)
      else {
        val chosen = found.sortBy(load(_, others)).take(wanted)
        chosen.map(_ -> (wanted + chosen.size - 1) / chosen.size)
      }
    }

  private def load(card: Card, of: Seq[Holder]): Int = of.map(_.cards.getOrElse(card, 0)).sum

  private def isOn(other: Holder, cards: Map[Card, Int], offered: Offer, others: Seq[Holder]) =
    cards.exists { case (card, ranks) =>
      other.cards.contains(card) && ranks + load(card, others) > offered.ranksOfGpu
    }

  /** In Spark's order, which every rank of a host sees. */
  private def answer(holder: Holder): Answer = Answer(Held,
    for {
      (host, addresses) <- offer().gpus
      own = addresses.filter(address => holder.cards.contains(Card(host, address)))
      if own.nonEmpty
    } yield host -> own)

  /** Runs whose clients have died, which the hub finds out, or no longer ask. */
  private def dropDead(): Unit = {
    def seconds(since: Long) = (System.nanoTime() - since) / 1e9
    waiting --= waiting.filter(each => seconds(each._2.heardAt) > secondsSilent).keys.toSeq
    holders --= holders.filter { case (run, holder) =>
      val isDead = !isOpen(run) && (holder.wasOpen || seconds(holder.since) > secondsOpening)
      holder.wasOpen ||= isOpen(run)
      isDead
    }.keys.toSeq
    ()
  }
}

private[supply] object Turns {
  /** Task slots of a host, for tasks that get GPUs and other resources or for any task. */
  final case class Slot(host: String, withDevices: Boolean)

  /** ranks: of each host, which get GPUs; less than 0: all GPUs of the host. */
  final case class Needs(slots: Map[Slot, Int], ranks: Map[String, Int])

  /** gpus: addresses by host. gpusOfTask: spark.task.resource.gpu.amount; 0: not set. */
  final case class Offer(slots: Map[Slot, Int], gpus: Map[String, Seq[String]] = Map.empty,
      gpusOfTask: Double = 0) {
    /** How many ranks share a GPU. */
    def ranksOfGpu: Int =
      if (gpusOfTask > 0 && gpusOfTask < 1) (1 / gpusOfTask).toInt else 1
  }

  /** gpus: for the ranks, by host, if it is the run's turn. */
  final case class Answer(state: State, gpus: Map[String, Seq[String]] = Map.empty)

  sealed abstract class State(val name: String)

  /** Other runs are in the way, or were here first. */
  case object Waits extends State("waits")

  /** It is the run's turn. */
  case object Held extends State("held")

  /** The ranks wait for a call. */
  case object Idle extends State("idle")

  /** The ranks have waited for a call, and must end. */
  case object Ending extends State("ending")

  /** The answer for ranks that must end, or whose executors have gone. */
  case object Gone extends State("gone")

  private final case class Card(host: String, address: String)
}
