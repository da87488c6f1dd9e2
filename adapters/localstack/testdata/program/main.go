// Program does nothing. A test builds it.
package main

func main() {}
