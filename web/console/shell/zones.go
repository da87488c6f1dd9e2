package shell

import (
	"net/http"
	"slices"
	"time"

	"dropbell/domain/template"
)

// Zones are the time zones to choose from: one or more for every offset in use, and the zone inUse.
func Zones(inUse string) []string {
	list := []string{"UTC", "Africa/Cairo", "Africa/Johannesburg", "Africa/Lagos", "Africa/Nairobi", "America/Anchorage", "America/Argentina/Buenos_Aires",
		"America/Bogota", "America/Chicago", "America/Denver", "America/Halifax", "America/Lima", "America/Los_Angeles", "America/Mexico_City",
		"America/New_York", "America/Phoenix", "America/Santiago", "America/Sao_Paulo", "America/St_Johns", "America/Toronto", "America/Vancouver",
		"Asia/Bangkok", "Asia/Colombo", "Asia/Dhaka", "Asia/Dubai", "Asia/Ho_Chi_Minh", "Asia/Hong_Kong", "Asia/Jakarta", "Asia/Jerusalem",
		"Asia/Karachi", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Kuala_Lumpur", "Asia/Macau", "Asia/Manila", "Asia/Riyadh", "Asia/Seoul",
		"Asia/Shanghai", "Asia/Singapore", "Asia/Taipei", "Asia/Tashkent", "Asia/Tehran", "Asia/Tokyo", "Asia/Urumqi", "Asia/Yangon",
		"Atlantic/Azores", "Atlantic/Reykjavik", "Australia/Adelaide", "Australia/Brisbane", "Australia/Darwin", "Australia/Perth",
		"Australia/Sydney", "Europe/Amsterdam", "Europe/Athens", "Europe/Berlin", "Europe/Brussels", "Europe/Bucharest", "Europe/Dublin",
		"Europe/Helsinki", "Europe/Istanbul", "Europe/Kyiv", "Europe/Lisbon", "Europe/London", "Europe/Madrid", "Europe/Moscow", "Europe/Oslo",
		"Europe/Paris", "Europe/Prague", "Europe/Rome", "Europe/Stockholm", "Europe/Vienna", "Europe/Warsaw", "Europe/Zurich",
		"Pacific/Auckland", "Pacific/Fiji", "Pacific/Honolulu"}
	if inUse != "" && !slices.Contains(list, inUse) {
		list = append([]string{inUse}, list...)
	}
	return list
}

// browserZone returns the time zone of the browser, and the console's own zone for a browser that
// has not told it.
func (sh *Shell) browserZone(r *http.Request) *time.Location {
	name := cookie(r, ZoneCookie)
	if zone, ok := sh.zones.Load(name); ok {
		return zone.(*time.Location)
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" { // Local is the zone of the server
		return sh.DefaultZone
	}
	kept, _ := sh.zones.LoadOrStore(name, zone)
	return kept.(*time.Location)
}

// UseShopsZone sets the zone of the page's instants and days that belong to several shops: the zone that all shops of the viewer
// have. shop is the number of the only shop of the page; 0 = all shops. See [ui.Frame.DayZone].
func (sh *Shell) UseShopsZone(r *http.Request, shop int64) error {
	shops, err := sh.AllShopsOf(r)
	Frame(r).ShopsZone = sh.sharedZone(shops, shop)
	return err
}

// sharedZone returns the zone of the shop, or the zone that all shops have if shop is 0; nil if there is none.
func (sh *Shell) sharedZone(shops []template.Shop, shop int64) *time.Location {
	if shop != 0 {
		shops = slices.DeleteFunc(slices.Clone(shops), func(s template.Shop) bool { return s.Number != shop })
	}
	if len(shops) == 0 || slices.ContainsFunc(shops, func(s template.Shop) bool { return s.Timezone != shops[0].Timezone }) {
		return nil
	}
	return sh.ShopZone(shops[0].Timezone)
}

// ShopZone returns the time zone named by the tag of a shop; for an empty or unknown tag it returns
// the console's own zone.
func (sh *Shell) ShopZone(tag string) *time.Location {
	if zone, err := time.LoadLocation(tag); err == nil && tag != "" {
		return zone
	}
	return sh.DefaultZone
}
