package stories

import (
	"dropbell/domain/delivery"
	"dropbell/views/pages"
)

// audiences are the pages around users: links, imports, segments.
func audiences() []Story {
	var all []Story
	for _, group := range [][]Story{optOuts()} {
		all = append(all, group...)
	}
	return all
}

func optOuts() []Story {
	page := pages.OptOut{Action: "/u/AQEAAAAAAAAD6UtYZWoPsA0glCgeUcX-ggY", Channel: delivery.Email, Offered: []delivery.Channel{delivery.App, delivery.Email, delivery.SMS}}
	off := page
	off.Off, off.Saved = delivery.Email.Bit()|delivery.SMS.Bit(), true
	return []Story{
		{Name: "optout/ask", Page: page.Page(), Outside: true},
		{Name: "optout/off", Page: off.Page(), Outside: true},
		{Name: "optout/missing", Page: pages.OptOutFailure{Status: 404}.Page(), Outside: true},
		{Name: "optout/busy", Page: pages.OptOutFailure{Status: 429}.Page(), Outside: true},
		{Name: "optout/unavailable", Page: pages.OptOutFailure{Status: 503}.Page(), Outside: true},
	}
}
