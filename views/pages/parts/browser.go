package parts

import "strings"

// BrowserName names the browser and the system of a User-Agent header.
func BrowserName(agent string) string {
	browser, system := "", ""
	for _, b := range [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"MicroMessenger", "WeChat"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}} {
		if strings.Contains(agent, b[0]) {
			browser = b[1]
			break
		}
	}
	for _, s := range [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"}} {
		if strings.Contains(agent, s[0]) {
			system = s[1]
			break
		}
	}
	switch {
	case browser != "" && system != "":
		return browser + ", " + system
	case browser+system != "":
		return browser + system
	case agent == "":
		return "?"
	}
	return string([]rune(agent)[:min(40, len([]rune(agent)))])
}
