package supply.tools

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.yarn.api.protocolrecords.{ApplicationsRequestScope, GetApplicationsRequest}
import org.apache.hadoop.yarn.client.api.YarnClient
import org.apache.hadoop.yarn.conf.YarnConfiguration

/** Ends the applications with the tag that is the argument, for launch/submit-supplier. */
private[supply] object EndApplication {
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
        // The shipped files: an application removes them only if it ends by itself.
        val files = FileSystem.get(client.getConfig)
        files.delete(new Path(files.getHomeDirectory, s".sparkStaging/${found.getApplicationId}"),
          true)
      }
    } finally client.stop()
  }
}
