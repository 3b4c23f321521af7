/* asio.cc: a small HTTP server on Asio.  A request for "/block" blocks the loop, and one for "/end" ends the program.
 * SPDX-License-Identifier: ISC */
#include <asio.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

using asio::ip::tcp;

struct session : std::enable_shared_from_this<session> {
	tcp::socket socket;
	std::string question;

	explicit session(tcp::socket &&of) : socket(std::move(of))
	{
	}

	void read()
	{
		auto self = shared_from_this();
		asio::async_read_until(
		    socket, asio::dynamic_buffer(question), "\r\n\r\n", [self](std::error_code error, std::size_t) {
			    if (!error)
				    self->answer();
		    });
	}

	void answer()
	{
		static const std::string text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
		const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
		while (question.find("/block") != std::string::npos && std::chrono::steady_clock::now() < until)
			;
		const bool is_end = question.find("/end") != std::string::npos;
		question.clear();
		auto self = shared_from_this();
		asio::async_write(socket, asio::buffer(text), [self, is_end](std::error_code error, std::size_t) {
			if (is_end)
				std::exit(0);
			if (!error)
				self->read();
		});
	}
};

static void accept_next(tcp::acceptor &acceptor)
{
	acceptor.async_accept([&acceptor](std::error_code error, tcp::socket socket) {
		if (!error)
			std::make_shared<session>(std::move(socket))->read();
		accept_next(acceptor);
	});
}

int main(int count, char **words)
{
	asio::io_context context(1);
	tcp::acceptor acceptor(
	    context, {asio::ip::address_v4::loopback(), static_cast<unsigned short>(std::atoi(words[count - 1]))});
	accept_next(acceptor);
	context.run();
	return 0;
}
