"""An example project: settings and managers of Scrapy's draft on throttling, and spiders that use them."""
