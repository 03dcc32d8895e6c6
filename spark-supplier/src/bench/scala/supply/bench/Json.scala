package supply.bench

import com.fasterxml.jackson.databind.PropertyNamingStrategies
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.module.scala.{ClassTagExtensions, DefaultScalaModule}

/** Commands and answers as JSON, with names_like_this. */
private[bench] object Json {
  private val mapper = JsonMapper.builder()
    .addModule(DefaultScalaModule)
    .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
    .build() :: ClassTagExtensions

  def read[A: Manifest](text: String): A = mapper.readValue[A](text)

  def write(value: AnyRef): String = mapper.writeValueAsString(value)
}
