package console

import (
	"fmt"
	"strings"
)

// addresses are the pages of the console: each list on its first page, on a page far behind, and
// with the filters that read the most rows.
func addresses() []string {
	var ticked strings.Builder
	for id := range 1000 {
		fmt.Fprintf(&ticked, "&id=%d", id*7+1)
	}
	return []string{
		"/", "/forecast", "/channels", "/shops", "/staff", "/keys", "/account", "/dead-messages",
		"/templates", "/templates?sort=latest", "/templates?state=draft&state=closed", "/templates?q=number+777", "/templates?q=nothing+like+it", "/templates?q=7", "/templates?shop=17",
		"/templates?state=paused", "/templates?state=sold_out&state=cancelled", "/templates?state=scheduled&state=open&q=number&shop=17",
		"/templates/1", "/templates/1/balance", "/templates/1/edit", "/templates/1/users/1001", "/templates/1/cockpit", "/templates/1/announcements",
		"/templates/bulk?step=pause&all=1&shop=17", "/templates/bulk?step=publish&all=1&shop=17", "/templates/bulk?step=pause" + ticked.String(),
		"/campaigns", "/campaigns?q=letter+477", "/campaigns?q=nothing+like+it", "/campaigns?state=paused", "/campaigns?state=failed", "/campaigns/1", "/campaigns/4999",
		"/coupons?by=user&q=1001", "/coupons?by=template&q=3", "/coupons?by=template&q=3&state=used", "/coupons?by=template&q=3&state=revoked", "/coupons?by=template&q=7777",
		"/coupons?by=order&q=order-994", "/coupons/locks", "/coupons/4711", "/notices", "/codes", "/templates/120/codes", "/segments", "/segments?q=segment+77", "/segments/77",
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

// files are the lists of the console as CSV, at their greatest length and with the filters that
// read the most rows.
func files() []string {
	return []string{
		"/templates.csv", "/templates.csv?state=draft&shop=17", "/campaigns.csv", "/campaigns.csv?q=letter+477", "/campaigns/4999/recipients.csv", "/segments.csv",
		"/coupons.csv?by=template&q=3", "/coupons.csv?by=template&q=3&state=revoked", "/coupons/locks.csv", "/grants.csv", "/grants.csv?template=3", "/codes.csv", "/codes.csv?template=120",
		"/users.csv?q=user+19", "/deliveries.csv?template=3", "/deliveries.csv?outcome=dead", "/dead-letters.csv", "/jobs.csv", "/jobs.csv?state=failed",
		"/shops.csv", "/staff.csv", "/keys.csv", "/audit.csv", "/audit.csv?q=nothing+like+it",
	}
}
