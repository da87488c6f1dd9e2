package main

// addresses are the console's pages: each list as it opens, deep inside, and
// with the filters for which it has to look furthest.
func addresses() []string {
	return []string{
		"/", "/forecast", "/channels", "/shops", "/staff", "/keys", "/account", "/dead-messages",
		"/templates", "/templates?sort=latest", "/templates?state=draft&state=closed", "/templates?q=number+777", "/templates?q=nothing+like+it", "/templates?shop=17",
		"/templates/1", "/templates/1/balance", "/templates/1/edit", "/templates/1/users/1001", "/templates/bulk?step=pause&all=1&shop=17",
		"/users", "/users?q=user+19", "/users?q=nobody", "/users?q=user150000%40example.com", "/users/1001",
		"/deliveries", "/deliveries?template=3", "/deliveries?template=3&slot=12", "/deliveries?slot=7", "/deliveries?channel=email", "/deliveries?channel=webhook",
		"/deliveries?state=ready", "/deliveries?outcome=dead", "/deliveries?outcome=failed", "/deliveries?outcome=in_flight", "/deliveries?kind=campaign",
		"/deliveries?user=4001", "/deliveries?user=4001&outcome=dead", "/deliveries?user=4002", "/deliveries?from=2020-01-01T00:00&to=2020-02-01T00:00",
		"/deliveries/15000", "/deliveries/15000?outcome=dead", "/deliveries/15000?user=7",
		"/dead-letters", "/dead-letters?template=2", "/dead-letters/list", "/dead-letters/list?channel=email&template=4", "/dead-letters/replay?template=2",
		"/jobs", "/jobs?state=failed", "/jobs/2500",
		"/audit", "/audit?actor=staff%3A17", "/audit?action=key.create", "/audit?action=template", "/audit?action=nothing.like", "/audit?q=case+99000", "/audit?q=nothing+like+it",
		"/audit?shop=17", "/audit?kind=template&id=4711", "/audit?from=2020-01-01&to=2020-02-01", "/audit?before=500",
	}
}
