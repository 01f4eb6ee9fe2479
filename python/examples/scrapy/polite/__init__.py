"""An example project: the settings and managers of Scrapy's draft on throttling, and spiders that use them."""
