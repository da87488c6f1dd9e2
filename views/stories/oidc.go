package stories

import accesspages "dropbell/views/pages/access"

// singleSignOn is the sign-in page with an identity provider.
func singleSignOn() []Story {
	story := func(name, problem string) Story {
		return Story{Name: "signin/" + name, Page: accesspages.SignIn{SingleSignOn: true, Return: "/templates?q=moon", Error: problem}.Page(), Outside: true}
	}
	return []Story{
		story("single-sign-on", ""),
		story("single-sign-on-down", "The identity provider does not answer. Try again in a moment, or sign in with your password."),
		story("single-sign-on-refused", "Single sign-on refused the sign-in. Your e-mail address must be verified at the identity provider and have access to this console. If it is verified, ask an administrator of this console for access."),
	}
}
