package supply.yarn

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.yarn.api.protocolrecords.{ApplicationsRequestScope, GetApplicationsRequest}
import org.apache.hadoop.yarn.client.api.YarnClient
import org.apache.hadoop.yarn.conf.YarnConfiguration

/**
 * Ends the applications with that tag: what launch/submit-supplier does when it is asked to end
 * itself.
 */
object EndApplication {
  def main(arguments: Array[String]): Unit = {
    val client = YarnClient.createYarnClient()
    client.init(new YarnConfiguration())
    client.start()
    try {
      val request = GetApplicationsRequest.newInstance()
      request.setApplicationTags(Set(arguments(0)).asJava)
      request.setScope(ApplicationsRequestScope.OWN)
      client.getApplications(request).asScala.foreach { found =>
        System.err.println(s"submit-supplier: ending ${found.getApplicationId}")
        client.killApplication(found.getApplicationId)
        // What an application that ends by itself removes: the files that were shipped along.
        val files = FileSystem.get(client.getConfig)
        files.delete(new Path(files.getHomeDirectory, s".sparkStaging/${found.getApplicationId}"),
          true)
      }
    } finally client.stop()
  }
}
