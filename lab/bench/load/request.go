package load

import (
	"fmt"
	"strconv"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// Post appends a request with a token and a JSON body. fields are additional header fields, each
// with its line end.
func Post(b []byte, path, token, fields, body string) []byte {
	for _, part := range [...]string{"POST ", path, " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: Bearer ", token,
		"\r\n", fields, "Content-Length: "} {
		b = append(b, part...)
	}
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}

// Put appends a request with a token and without a body. fields are as in [Post].
func Put(b []byte, path, token, fields string) []byte {
	for _, part := range [...]string{"PUT ", path, " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ", token, "\r\n", fields, "Content-Length: 0\r\n\r\n"} {
		b = append(b, part...)
	}
	return b
}

// Token is the token of a user for an hour, signed with the secret of AUTH_JWT_SECRET.
func Token(secret string, user int) (string, error) {
	t, err := jwt.NewBuilder().Subject(strconv.Itoa(user)).Expiration(time.Now().Add(time.Hour)).Build()
	if err != nil {
		return "", err
	}
	signed, err := jwt.Sign(t, jwt.WithKey(jwa.HS256(), []byte(secret)))
	return string(signed), err
}

// Tokens are the tokens of users 1…n.
func Tokens(secret string, n int) ([]string, error) {
	list := make([]string, n)
	for i := range list {
		var err error
		if list[i], err = Token(secret, i+1); err != nil {
			return nil, fmt.Errorf("token of user %d: %w", i+1, err)
		}
	}
	return list, nil
}
