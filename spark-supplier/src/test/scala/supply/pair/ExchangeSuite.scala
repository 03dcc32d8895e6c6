package supply.pair

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, ContractException}
import supply.lmdb.Datum
import supply.protocol.Exchange
import supply.testing.{TestRank, TestStream}

/** What a task tells its rank to exchange with the other ranks, and which ranks it refuses. */
class ExchangeSuite extends AnyFunSuite with PairWithRank {
  private val exchange = Exchange.all(seed = -7, fraction = 250000)

  private def announced(rank: TestRank): Exchange = TestStream.header(rank)(Exchange.read)

  private def withAcceptingRank(body: TestRank => Unit): Unit = withRank { rank =>
    assert(rank.open(exchange = true) == "OK")
    body(rank)
  }

  test("the rank reads what it must exchange, and the next attempt finds it") {
    withAcceptingRank { rank =>
      attached(rank) { pair =>
        pair.writeOrCheckExchange(exchange)
        pair.writeOrCheckSchema(Datum.schema)
        assert(announced(rank) == exchange)
      }
      attached(rank, attempt = 1) { pair =>
        pair.writeOrCheckExchange(exchange)
        pair.writeOrCheckSchema(Datum.schema)
        assert(announced(rank) == exchange)
      }
    }
  }

  test("with the schema the exchange is fixed: another one is refused, and stays unwritten") {
    withAcceptingRank { rank =>
      attached(rank) { pair =>
        pair.writeOrCheckExchange(exchange)
        pair.writeOrCheckSchema(Datum.schema)
      }
      attached(rank, attempt = 1) { pair =>
        Seq(Exchange.Off, exchange.copy(seed = 8), exchange.copy(fraction = 1)).foreach { other =>
          val message = intercept[ContractException](pair.writeOrCheckExchange(other)).getMessage
          assert(message.startsWith(rank.paths.mappedFile) &&
            message.contains("another exchange (--shuffle all, --exchange-fraction, --seed)"))
          assert(announced(rank) == exchange)
        }
      }
    }
  }

  test("until the schema is there, a run replaces what a dead one has announced") {
    withAcceptingRank { rank =>
      attached(rank)(_.writeOrCheckExchange(exchange))
      attached(rank)(_.writeOrCheckExchange(Exchange.Off))
      assert(announced(rank) == Exchange.Off)
    }
  }

  test("a rank whose program does not exchange is refused by its name") {
    withPair() { (rank, pair) =>
      val message = intercept[ConfigException](pair.writeOrCheckExchange(exchange)).getMessage
      assert(message.startsWith("pair 0 (") &&
        message.contains(
          "options.exchange and supply_exchange_open() (Python: exchange='supplied')") &&
        message.endsWith("or supply without --shuffle all"))
      assert(announced(rank) == Exchange.Off)
      pair.writeOrCheckExchange(Exchange.Off)
    }
  }
}
